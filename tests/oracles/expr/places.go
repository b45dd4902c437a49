// The place of each node of a tree: what an error about it points at.

package main

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
)

// places lists a node before what it holds, and that in the order in which it is written. Pairs of a map are left out:
// no error is ever about one.
func places(node ast.Node) []int {
	var list []int
	var visit func(ast.Node)
	visit = func(node ast.Node) {
		if node == nil {
			return
		}
		if _, isPair := node.(*ast.PairNode); !isPair {
			list = append(list, node.Location().From)
		}
		for _, child := range children(node) {
			visit(child)
		}
	}
	visit(node)
	return list
}

func children(node ast.Node) []ast.Node {
	switch node := node.(type) {
	case *ast.NilNode, *ast.IdentifierNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode,
		*ast.BytesNode, *ast.PointerNode:
		return nil
	case *ast.UnaryNode:
		return []ast.Node{node.Node}
	case *ast.BinaryNode:
		return []ast.Node{node.Left, node.Right}
	case *ast.ChainNode:
		return []ast.Node{node.Node}
	case *ast.MemberNode:
		return []ast.Node{node.Node, node.Property}
	case *ast.SliceNode:
		return []ast.Node{node.Node, node.From, node.To}
	case *ast.CallNode:
		return append([]ast.Node{node.Callee}, node.Arguments...)
	case *ast.BuiltinNode:
		return node.Arguments
	case *ast.PredicateNode:
		return []ast.Node{node.Node}
	case *ast.ConditionalNode:
		return []ast.Node{node.Cond, node.Exp1, node.Exp2}
	case *ast.VariableDeclaratorNode:
		return []ast.Node{node.Value, node.Expr}
	case *ast.SequenceNode:
		return node.Nodes
	case *ast.ArrayNode:
		return node.Nodes
	case *ast.MapNode:
		return node.Pairs
	case *ast.PairNode:
		return []ast.Node{node.Key, node.Value}
	}
	panic(fmt.Sprintf("no parser makes a %T", node))
}
